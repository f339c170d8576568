console.log(Intl.DateTimeFormat().resolvedOptions().timeZone, new Date(0).toString(), (1234.5).toLocaleString());
