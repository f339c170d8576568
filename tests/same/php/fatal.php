<?php
register_shutdown_function(function () { echo "shutdown\n"; });
nothing_like_this();
