// The pods that manifests (YAML, on the standard input) make, each with an address of its own on the loopback
// interface: one JSON object a line, with the pod's name, address, uid and gid, whether its root file system is
// read-only, where its Secrets are mounted, the URL that its readiness is asked at, the arguments of its container, and what
// decides whether it is started again.
import fs from "node:fs";
import { parseAllDocuments } from "yaml";

const documents = parseAllDocuments(fs.readFileSync(0, "utf8")).map((document) => document.toJS());

let pods = 0;
for (const { kind, metadata, spec } of documents) {
  if (kind !== "Job" && kind !== "StatefulSet") continue;
  const pod = spec.template.spec;
  const [container] = pod.containers;
  const secrets = Object.fromEntries(
    pod.volumes
      .filter(({ secret }) => secret !== undefined)
      .map(({ name, secret }) => [container.volumeMounts.find((mount) => mount.name === name).mountPath, secret.secretName]),
  );
  const probe = container.readinessProbe.httpGet;
  const probePort = container.ports.find(({ name }) => name === probe.port).containerPort;
  // Exit statuses that end a Job.
  const failJobOn = (spec.podFailurePolicy?.rules ?? [])
    .filter(({ action, onExitCodes }) => action === "FailJob" && onExitCodes?.containerName === container.name)
    .flatMap(({ onExitCodes }) => {
      if (onExitCodes.operator !== "In") throw new Error(`${metadata.name}: operator ${onExitCodes.operator}`);
      return onExitCodes.values;
    });
  for (let index = 0; index < (spec.replicas ?? spec.completions ?? 1); ++index) {
    const address = `127.0.1.${++pods}`;
    // What the fields that the manifests refer to would hold.
    const fields = {
      "metadata.labels['apps.kubernetes.io/pod-index']": index,
      "metadata.annotations['batch.kubernetes.io/job-completion-index']": index,
      "status.podIP": address,
    };
    const environment = {};
    for (const { name, valueFrom } of container.env ?? []) environment[name] = fields[valueFrom.fieldRef.fieldPath];
    const expand = (text) =>
      text.replace(/\$\((\w+)\)/g, (_, name) => {
        if (environment[name] === undefined) throw new Error(`${metadata.name}: $(${name}) has no value`);
        return environment[name];
      });
    // A port of every address is, in a pod, one of its own address.
    const args = container.args.map((text) => expand(text).replace("0.0.0.0:", `${address}:`));
    console.log(
      JSON.stringify({
        name: `${metadata.name}-${index}`,
        kind,
        owner: metadata.name,
        component: spec.template.metadata.labels["app.kubernetes.io/component"],
        address,
        user: `${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}`,
        readOnly: container.securityContext.readOnlyRootFilesystem,
        secrets,
        ready: `http://${address}:${probePort}${probe.path}`,
        argv: [...container.command, ...args],
        // Where nothing is said, Kubernetes' own defaults.
        restartPolicy: pod.restartPolicy ?? "Always",
        backoffLimit: spec.backoffLimit ?? 6,
        failJobOn,
      }),
    );
  }
}
