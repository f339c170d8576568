#!/bin/sh
# --- tool
# description = "Has an argument that is mirrored in a header"
# parameters.region = { type = "string", description = "Where", x-mcp-header = "Region" }
# ---
echo "Region: $ARG_region"
