//! The names in a cell's /etc that every Unix has, whatever the host's own files say.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Who owns what is not the program's own. Nobody can log in.
pub const PASSWD: &str = "root:x:0:0:root:/root:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/workspace/.home:/bin/sh
";
pub const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";
pub const NSSWITCH: &str = "passwd: files
group: files
hosts: files dns
services: files
protocols: files
";

pub const PROTOCOLS: &str = "ip 0 IP
icmp 1 ICMP
tcp 6 TCP
udp 17 UDP
ipv6 41 IPv6
ipv6-icmp 58 IPv6-ICMP
sctp 132 SCTP
";

pub const SERVICES: &str = "echo 7/tcp
echo 7/udp
ftp 21/tcp
ssh 22/tcp
telnet 23/tcp
smtp 25/tcp mail
domain 53/tcp
domain 53/udp
tftp 69/udp
http 80/tcp www
kerberos 88/tcp
pop3 110/tcp
ntp 123/udp
imap2 143/tcp imap
snmp 161/udp
irc 194/tcp
ldap 389/tcp
https 443/tcp
https 443/udp
submissions 465/tcp smtps
syslog 514/udp
submission 587/tcp
ldaps 636/tcp
domain-s 853/tcp
rsync 873/tcp
imaps 993/tcp
pop3s 995/tcp
socks 1080/tcp
mqtt 1883/tcp
nfs 2049/tcp
git 9418/tcp
mysql 3306/tcp
postgresql 5432/tcp postgres
amqp 5672/tcp
redis 6379/tcp
http-alt 8080/tcp
";

/// Files of /etc that Debian's runtimes have links to in /usr: a folder's beginning, and the file in it.
const LINKED: [(&str, &str); 1] = [("python3.", "sitecustomize.py")];
/// Such a file has some lines.
const LONGEST: u64 = 64 << 10;

/// Copies such files. A copy, since the host's own would be an inode that cells share; one that cannot be read is not there.
pub fn copy_linked(to: &Path) -> io::Result<()> {
    let Ok(entries) = fs::read_dir("/etc") else {
        return Ok(());
    };
    for entry in entries.flatten().take(4096) {
        let name = entry.file_name();
        for (begin, file) in LINKED {
            if name.as_encoded_bytes().starts_with(begin.as_bytes())
                && let Ok(text) = read_short(&entry.path().join(file))
            {
                let folder = to.join(&name);
                fs::create_dir(&folder)?;
                fs::write(folder.join(file), text)?;
            }
        }
    }
    Ok(())
}

/// A regular file, and nothing that a read could wait for.
fn read_short(path: &Path) -> io::Result<Vec<u8>> {
    let mut options = fs::File::options();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}
