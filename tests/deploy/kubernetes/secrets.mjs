// Unpacks Secrets (YAML, on the standard input) as a node does for a pod of a group: each in a folder of its name, its files
// of root and that group, with mode 0440.
//
//   node secrets.mjs FOLDER GID < secrets
import fs from "node:fs";
import path from "node:path";
import { parseAllDocuments } from "yaml";

const [folder, group] = process.argv.slice(2);
for (const document of parseAllDocuments(fs.readFileSync(0, "utf8"))) {
  const { metadata, data } = document.toJS();
  const secret = path.join(folder, metadata.name);
  fs.mkdirSync(secret, { recursive: true });
  for (const [name, value] of Object.entries(data)) {
    const file = path.join(secret, name);
    fs.writeFileSync(file, Buffer.from(value, "base64"), { mode: 0o440 });
    fs.chownSync(file, 0, Number(group));
  }
}
