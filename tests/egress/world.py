"""The world beyond a test's network: every address answers, and a log tells who was asked for what.

Arguments: the log, a certificate and its key. Says `ready` on standard output."""
import base64, gzip, hashlib, json, socket, ssl, struct, sys, threading

log_path, certificate, key = sys.argv[1:4]
lock = threading.Lock()
log_file = open(log_path, "a", buffering=1)
counts = {}


def log(*words):
    with lock:
        log_file.write(" ".join(str(word) for word in words) + "\n")


# Name → addresses; a list of lists answers each query with the next one. Any other name below .test is the sink.
NAMES = {
    "allowed.test": ["203.0.113.80"],
    "port.test": ["203.0.113.82"],
    "secret.test": ["203.0.113.83"],
    "loop.test": ["127.0.0.1"],
    "zero.test": ["0.0.0.0"],
    "private.test": ["10.0.0.5"],
    "lan.test": ["192.168.7.7"],
    "carrier.test": ["100.64.0.9"],
    "meta.test": ["169.254.169.254"],
    "azure.test": ["168.63.129.16"],
    "mixed.test": ["203.0.113.80", "10.0.0.5"],
    "mapped.test": ["::ffff:10.0.0.5"],
    "nat.test": ["64:ff9b::a00:5"],
    "sixtofour.test": ["2002:a00:5::1"],
    "link.test": ["fe80::1"],
    "own.test": ["203.0.113.2"],
    "six.test": ["2001:db8:2::80"],
    "rebind.test": [["203.0.113.80"], ["10.0.0.5"]],
    "none.test": [],
    "metadata.google.internal": ["169.254.169.254"],
}


# What deno imports: a module by its URL, and the same as a package of JSR.
MODULE = b"export const said: string = 'from afar';\n"
FILES = {"/mod.ts": {"size": len(MODULE), "checksum": "sha256-" + hashlib.sha256(MODULE).hexdigest()}}
MODULES = {
    "/x.ts": MODULE,
    "/@a/b/meta.json": json.dumps({"scope": "a", "name": "b", "latest": "1.0.0", "versions": {"1.0.0": {}}}).encode(),
    "/@a/b/1.0.0_meta.json": json.dumps({"manifest": FILES, "exports": {".": "./mod.ts"}}).encode(),
    "/@a/b/1.0.0/mod.ts": MODULE,
}


def addresses(name):
    if name in NAMES:
        found = NAMES[name]
        if found and isinstance(found[0], list):
            counts[name] = counts.get(name, -1) + 1
            # Both kinds of address are asked for at once: two queries are one lookup.
            found = found[counts[name] // 2 % len(found)]
        return found
    if name.endswith(".wild.test"):
        return ["203.0.113.81"]
    return ["203.0.113.66"] if "." in name else []


def dns():
    # A resolver takes answers from the address it asked alone.
    for address in ("203.0.113.53", "0.0.0.0"):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, 53))
        threading.Thread(target=answer_queries, args=(server,), daemon=True).start()


def answer_queries(server):
    while True:
        query, client = server.recvfrom(4096)
        try:
            at, labels = 12, []
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode())
                at += 1 + query[at]
            kind = struct.unpack("!H", query[at + 1:at + 3])[0]
            name = ".".join(labels).lower()
            log("dns", name)
            family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
            found = []
            for address in addresses(name) if family else []:
                is_six = ":" in address
                if is_six == (family == socket.AF_INET6):
                    found.append(socket.inet_pton(family, address))
            head = query[:2] + struct.pack("!HHHHH", 0x8580, 1, len(found), 0, 0)
            records = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(data)) + data for data in found)
            server.sendto(head + query[12:at + 5] + records, client)
        except (IndexError, UnicodeDecodeError, struct.error):
            log("dns", "garbled")


def listen(family, any_address, port, secure):
    server = socket.socket(family, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # IP_TRANSPARENT: answers come from whatever address was asked.
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.setsockopt(socket.IPPROTO_IPV6, 75, 1)
    else:
        server.setsockopt(socket.SOL_IP, 19, 1)
    server.bind((any_address, port))
    server.listen(256)
    threading.Thread(target=accept, args=(server, port, secure), daemon=True).start()


def accept(server, port, secure):
    while True:
        client, _ = server.accept()
        threading.Thread(target=serve, args=(client, port, secure), daemon=True).start()


def serve(client, port, secure):
    place = f"{client.getsockname()[0]}:{port}"
    log("tcp", place)
    client.settimeout(60)
    try:
        if port == 5432:
            client.sendall(b"greetings\n")
            while piece := client.recv(4096):
                client.sendall(piece.upper())
            return
        if secure:
            first = client.recv(4096, socket.MSG_PEEK)
            if first and first[:1] != b"\x16":
                log("plain", place, first)
                return
            names = []
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            context.sni_callback = lambda _, name, __: names.append(name)
            client = context.wrap_socket(client, server_side=True)
            log("tls", place, *names)
        http(client.makefile("rwb"), place)
    except OSError as error:
        log("broken", place, type(error).__name__)
    finally:
        client.close()


GREET = b"export const greet = (who: string): string => `hello ${who}`;\n"
# A registry with one package, in JSR's words.
JSR = {
    "/@stage/greet/meta.json": {"scope": "stage", "name": "greet", "latest": "1.0.0", "versions": {"1.0.0": {}}},
    "/@stage/greet/1.0.0_meta.json": {
        "exports": {".": "./mod.ts"},
        "manifest": {"/mod.ts": {"size": len(GREET), "checksum": "sha256-" + hashlib.sha256(GREET).hexdigest()}},
    },
}
JSR = {path: json.dumps(page).encode() for path, page in JSR.items()} | {"/@stage/greet/1.0.0/mod.ts": GREET}


CHUNKED = "Transfer-Encoding: chunked\r\n"


def tell(how, headers):
    """A host that says what it was sent, in a form that is hard to find."""
    key = headers.get("x-key", "").removeprefix("key ")
    percent = "".join(f"%{byte:02X}" if chr(byte) in "/+" else chr(byte) for byte in key.encode())
    first = int(headers.get("range", "bytes=0-").split("=")[1].split("-")[0])
    return {
        "reason": (f"200 {key}", "", b"said"),
        "header": ("200 OK", f"X-Said: {key}\r\n", b"said"),
        "name": ("200 OK", f"X-{key}: said\r\n", b"said"),
        "base64": ("200 OK", "", base64.b64encode(b"me:" + key.encode())),
        "percent": ("200 OK", f"Location: /?k={percent}\r\n", percent.encode()),
        "range": ("206 Partial Content" if "range" in headers else "200 OK", "", key[first:].encode()),
        "gzip": ("200 OK", "Content-Encoding: gzip\r\n", gzip.compress(key.encode())),
        "part": ("206 Partial Content", f"Content-Range: bytes 7-{len(key) - 1}/{len(key)}\r\n", key[7:].encode()),
        "early": (f"103 Early Hints\r\nLink: <{key}>\r\n\r\nHTTP/1.1 200 OK", "", b"said"),
        "pieces": ("200 OK", CHUNKED, b"".join(b"1;%b\r\n%c\r\n" % (key.encode(), letter) for letter in key.encode()) + b"0\r\n\r\n"),
        "trailer": ("200 OK", CHUNKED + "Trailer: X-Said\r\n", f"4\r\nsaid\r\n0\r\nX-Said: {key}\r\n\r\n".encode()),
        "plain": ("200 OK", "", key.encode()),
    }[how]


def http(stream, place):
    while line := stream.readline(1 << 16):
        method, path = (line.decode("latin-1").split() + ["", ""])[:2]
        headers = {}
        while (line := stream.readline(1 << 16)) not in (b"\r\n", b"\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", 0)))
        log("http", place, method, path, "host=" + headers.get("host", ""))
        if "authorization" in headers or "x-key" in headers:
            log("auth", headers.get("authorization", ""), headers.get("x-key", ""))
        answer, extra = b"", ""
        if path.startswith("/redirect/"):
            extra = f"Location: http://{path[len('/redirect/'):]}\r\n"
            status = "302 Found"
        elif path in JSR:
            status, answer = "200 OK", JSR[path]
        elif path.startswith("/big/"):
            status, answer = "200 OK", b"x" * int(path[len("/big/"):])
        elif path.startswith("/tell/"):
            status, extra, answer = tell(path[len("/tell/"):].split("?")[0], headers)
        elif path in MODULES:
            status, answer = "200 OK", MODULES[path]
            extra = f"Content-Type: application/{'json' if path.endswith('json') else 'typescript'}\r\n"
        else:
            facts = {"place": place, "path": path, "headers": headers, "body": body.decode("latin-1")}
            status, answer = "200 OK", json.dumps(facts).encode()
        length = "" if CHUNKED in extra else f"Content-Length: {len(answer)}\r\n"
        stream.write(f"HTTP/1.1 {status}\r\n{extra}{length}\r\n".encode() + answer)
        stream.flush()


dns()
for family, any_address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
    for port, secure in ((22, False), (25, False), (80, False), (443, True), (5432, False), (8080, False), (8443, True)):
        try:
            listen(family, any_address, port, secure)
        except OSError:
            if family == socket.AF_INET:
                raise
print("ready", flush=True)
threading.Event().wait()
