#!/bin/sh
# --- resource
# uri = "test://static-text"
# description = "A text that never changes"
# mime = "text/plain"
# ---
printf 'This is the content of the static text resource.'
