# What a published script can say beside what it prints: `. ./hotcell.sh`. See `hotcell help publish`.
# Arguments are in $ARG_name, the fields of accepted forms in $ANSWER_key_field.

# hotcell_say JSON
hotcell_say() { printf '%s%s\n' "$HOTCELL_TALK" "$1"; }

# hotcell_quote TEXT: the text as JSON
hotcell_quote() {
  case $1 in
    *[!A-Za-z0-9\ .,:\;?!_-]*)
      printf '%s' "$1" | sed -e 's/[\\"]/\\&/g' -e 's/	/\\t/g' -e 's/\r/\\r/g' | awk '
        BEGIN { printf "\"" } NR > 1 { printf "\\n" } { printf "%s", $0 } END { printf "\"" }' ;;
    *) printf '"%s"' "$1" ;;
  esac
}

# hotcell_image FILE [MIME], hotcell_audio FILE [MIME]
hotcell_image() { hotcell_say "{\"type\":\"image\",\"data\":\"$(base64 -w0 "$1")\",\"mimeType\":\"${2:-image/png}\"}"; }
hotcell_audio() { hotcell_say "{\"type\":\"audio\",\"data\":\"$(base64 -w0 "$1")\",\"mimeType\":\"${2:-audio/wav}\"}"; }

# hotcell_progress DONE [TOTAL]
hotcell_progress() { hotcell_say "{\"type\":\"progress\",\"progress\":$1${2:+,\"total\":$2}}"; }

# hotcell_log TEXT [LEVEL]
hotcell_log() { hotcell_say "{\"type\":\"log\",\"level\":\"${2:-info}\",\"data\":$(hotcell_quote "$1")}"; }

# hotcell_changed WHAT: clients look again at tools, prompts, resources, or one address
hotcell_changed() { hotcell_say "{\"type\":\"changed\",\"what\":$(hotcell_quote "$1")}"; }

# hotcell_ask KEY MESSAGE SCHEMA: shows the user a form. Does not return while the answer is
# missing; afterwards $ANSWER_key is accept, decline or cancel.
hotcell_ask() {
  hotcell_say "{\"type\":\"ask\",\"questions\":{\"$1\":{\"params\":{\"message\":$(hotcell_quote "$2"),\"requestedSchema\":$3}}}}"
  eval "[ -n \"\${ANSWER_$1-}\" ]" || exit 0
}
