"""Follows a Dockerfile's steps on unpacked trees, without a daemon: one stage's root file system is left in a folder.

Knows what deploy/docker/Dockerfile uses, and refuses anything else. Needs root, for chroot.
"""

import argparse
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys


def instructions(path):
    """The Dockerfile as (name, rest) with continued lines joined and comments left out."""
    text = "".join(line for line in open(path) if not line.lstrip().startswith("#"))
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            name, rest = line.strip().split(None, 1)
            yield name.upper(), rest.strip()


class Stage:
    def __init__(self, name, base, root, config):
        self.name, self.base, self.root = name, base, root
        self.config = json.loads(json.dumps(config))
        self.arguments = {}

    def expand(self, text):
        known = {**self.config["env"], **self.arguments}
        return re.sub(r"\$\{(\w+)\}", lambda match: known[match.group(1)], text)

    def inside(self, path):
        return os.path.join(self.root, path.lstrip("/"))


class Builder:
    def __init__(self, options):
        self.options = options
        self.given = dict(pair.split("=", 1) for pair in options.build_arg)
        self.contexts = dict(pair.split("=", 1) for pair in options.build_context)
        self.stages = {}
        self.stage = None

    def build(self):
        steps = list(instructions(self.options.dockerfile))
        needed = self.needed(steps)
        for name, rest in steps:
            if name == "FROM":
                self.begin(rest, needed)
            elif self.stage is not None:
                print(f"{self.stage.name}: {name} {rest}", flush=True)
                getattr(self, "do_" + name.lower(), self.refuse)(rest)
        return self.stages[self.options.target]

    def refuse(self, rest):
        sys.exit(f"{self.options.dockerfile}: this builder does not know: {rest}")

    def needed(self, steps):
        """The target and the stages that it is made from."""
        uses, name = {}, None
        for instruction, rest in steps:
            words = rest.split()
            if instruction == "FROM":
                name = words[2]
                uses[name] = {words[0]}
            elif instruction == "COPY" and words[0].startswith("--from="):
                uses[name].add(words[0].split("=", 1)[1])
        if self.options.target not in uses:
            sys.exit(f"--target: value {self.options.target}; allowed: {', '.join(uses)}")
        wanted, open_ends = set(), [self.options.target]
        while open_ends:
            name = open_ends.pop()
            wanted.add(name)
            open_ends += [other for other in uses.get(name, ()) if other not in wanted]
        return wanted

    def begin(self, rest, needed):
        base, _, name = rest.split()
        self.stage = None
        if name not in needed:
            return
        root = os.path.join(self.options.work, name)
        parent = self.stages.get(base)
        subprocess.run(["cp", "-a", parent.root if parent else self.options.base, root], check=True)
        config = {"env": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, "user": "0:0", "workdir": "/"}
        if parent:
            config = parent.config
        self.stage = self.stages[name] = Stage(name, base, root, config)

    def do_arg(self, rest):
        name, _, default = rest.partition("=")
        self.stage.arguments[name] = self.given.get(name, default)

    def do_env(self, rest):
        name, value = rest.split("=", 1)
        self.stage.config["env"][name] = self.stage.expand(value)

    def do_copy(self, rest):
        words = self.stage.expand(rest).split()
        root = self.options.context
        if words[0].startswith("--from="):
            name = words.pop(0).split("=", 1)[1]
            root = self.stages[name].root if name in self.stages else self.contexts[name]
        *sources, target = words
        into = self.stage.inside(target)
        for source in sources:
            path = os.path.join(root, source.lstrip("/"))
            if os.path.isdir(path):
                shutil.copytree(path, into, symlinks=True, dirs_exist_ok=True)
                continue
            os.makedirs(into if target.endswith("/") else os.path.dirname(into), exist_ok=True)
            for match in glob.glob(path) or sys.exit(f"COPY: there is no {path}"):
                shutil.copy2(match, into)

    def do_run(self, rest):
        command = ["chroot", self.stage.root, "/bin/sh", "-ec", rest]
        subprocess.run(command, check=True, env={**self.stage.config["env"], **self.stage.arguments})

    def do_user(self, rest):
        self.stage.config["user"] = rest

    def do_workdir(self, rest):
        self.stage.config["workdir"] = rest
        os.makedirs(self.stage.inside(rest), exist_ok=True)

    def do_cmd(self, rest):
        self.stage.config["cmd"] = json.loads(rest)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dockerfile", required=True)
    parser.add_argument("--target", required=True, help="the stage to build")
    parser.add_argument("--context", required=True, help="the folder that COPY takes files from")
    parser.add_argument("--base", required=True, help="the unpacked base image")
    parser.add_argument("--work", required=True, help="the stages are built here, each in a folder of its name")
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--build-context", action="append", default=[], metavar="NAME=DIR")
    stage = Builder(parser.parse_args()).build()
    with open(stage.root + ".json", "w") as file:
        json.dump(stage.config, file)
    print(f"{stage.root}: user {stage.config['user']}, PATH {shlex.quote(stage.config['env']['PATH'])}")


if __name__ == "__main__":
    main()
