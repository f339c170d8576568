bash -c 'env | sort; ls /proc/self/fd; grep -c zygote /proc/self/maps'
echo ${LD_PRELOAD-none} ${HOTCELL_ZYGOTE-none}
