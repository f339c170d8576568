#!/bin/sh
# --- tool
# description = "Returns a text"
# annotations = { readOnlyHint = true }
# ---
echo 'This is a simple text response for testing.'
