#!/bin/sh
# --- tool
# description = "Lets clients look at the prompts again"
# ---
. ./hotcell.sh
hotcell_changed prompts
echo 'Told.'
