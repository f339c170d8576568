<?php
register_shutdown_function(fn() => print("shutdown\n")); ob_start(); echo "buffered\n"; exit(7);
