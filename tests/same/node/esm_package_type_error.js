// files: {"package.json": "{\"type\": \"module\"}"}
import { nope } from "node:fs";
