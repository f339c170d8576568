#!/bin/sh
# --- resource
# uri = "test://watched-resource"
# description = "A text that one can watch"
# mime = "text/plain"
# ---
printf 'Nothing new.'
