#!/bin/sh
# --- resource
# uri = "test://static-binary"
# description = "An image that never changes"
# mime = "image/png"
# ---
base64 -d <<'PNG'
iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==
PNG
