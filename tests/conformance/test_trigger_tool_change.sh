#!/bin/sh
# --- tool
# description = "Lets clients look at the tools again"
# ---
. ./hotcell.sh
hotcell_changed tools
echo 'Told.'
