#!/bin/sh
# --- prompt
# description = "One message"
# ---
echo 'This is a simple prompt for testing.'
