<p>before <?= 1 + 1 ?></p>
<?php if (true): ?>
yes
<?php endif ?>
after
