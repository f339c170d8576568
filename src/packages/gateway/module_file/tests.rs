use super::*;

#[test]
fn a_module_has_a_few_files_and_no_path_leads_elsewhere() {
    for (path, zip) in [
        ("github.com/google/uuid/@v/list", None),
        ("github.com/google/uuid/@latest", None),
        ("github.com/!burnt!sushi/toml/@v/v1.2.0.info", None),
        ("github.com/!burnt!sushi/toml/@v/master.info", None),
        ("gopkg.in/yaml.v3/@v/v3.0.1.mod", None),
        (
            "github.com/!burnt!sushi/toml/@v/v1.2.0+incompatible.zip",
            Some("github.com/BurntSushi/toml@v1.2.0+incompatible"),
        ),
    ] {
        let name = match ModuleFile::parse(path).expect(path) {
            ModuleFile::Zip(name) => Some(name),
            ModuleFile::Other => None,
        };
        assert_eq!(name.as_deref(), zip, "{path}");
    }
    for path in [
        "",
        "@v/list",
        "uuid/@v/list",
        "github.com/../x/@v/list",
        "github.com//x/@v/list",
        "github.com/x/@v/../../y",
        "github.com/x/@v/v1.0.0.exe",
        "github.com/x/@v/",
        "github.com/x/@v/.zip",
        "github.com/x/@v/a/b.zip",
        "github.com/x/@v/v1%2e0.zip",
        "github.com/x/@v/list.zip.info/@v/list",
        "github.com/X/@v/list",
        "github.com/x!/@v/list",
        "github.com/x/y",
        "http://h.example/x/@v/list",
        "/h.example/x/@v/list",
        "sumdb/sum.example/latest",
    ] {
        assert!(ModuleFile::parse(path).is_none(), "{path}");
    }
}
