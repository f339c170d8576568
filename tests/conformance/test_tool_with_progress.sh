#!/bin/sh
# --- tool
# description = "Reports progress while it works"
# ---
. ./hotcell.sh
for done in 0 50 100; do
  hotcell_progress $done 100
  sleep 0.05
done
echo 'Reported three times.'
