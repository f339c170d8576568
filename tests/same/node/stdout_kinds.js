for (const s of [process.stdout, process.stderr])
  console.log(s.constructor.name, s.fd, s.isTTY, s.writable, s.columns, s._type);
