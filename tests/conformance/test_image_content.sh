#!/bin/sh
# --- tool
# description = "Returns an image"
# ---
. ./hotcell.sh
base64 -d >red.png <<'PNG'
iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==
PNG
hotcell_image red.png
