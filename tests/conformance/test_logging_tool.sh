#!/bin/sh
# --- tool
# description = "Logs a line; who has not asked for lines gets none"
# ---
# A shell, because the suite waits half a second for this one and no longer.
. ./hotcell.sh
hotcell_log 'A line for whoever listens'
echo 'Logged a line.'
