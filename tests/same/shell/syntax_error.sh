echo this runs
if true; then
