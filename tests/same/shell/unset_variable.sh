set -eu
echo one
echo "$nothing"
echo never
