// Turns manifests (YAML, on the standard input) into a TypeScript program whose type check is a check of the manifests:
// every document is a literal of its kind's interface, in which an unknown or a missing field is an error.
//
//   kubectl kustomize OVERLAY | node typed.mjs > manifests.ts
import fs from "node:fs";
import { parseAllDocuments } from "yaml";

const documents = parseAllDocuments(fs.readFileSync(0, "utf8")).map((document) => {
  if (document.errors.length > 0) throw document.errors[0];
  return document.toJS();
});
if (documents.length === 0) throw new Error("no documents");

documents.forEach(({ apiVersion, kind }, index) => {
  console.log(`import type { I${kind} as Kind${index} } from "kubernetes-models/${apiVersion}";`);
});
documents.forEach((document, index) => {
  console.log(`export const document${index}: Kind${index} = ${JSON.stringify(document, null, 2)};`);
});
