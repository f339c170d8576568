#!/bin/sh
# --- tool
# description = "Asks one question"
# ---
. ./hotcell.sh
hotcell_ask confirm 'Shall we go on?' '{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}'
echo "The user said $ANSWER_confirm."
