// Package hotcell is what a program has of hotcell: its arguments, what it shows, values that it shares, tools that it may call.
package hotcell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Args are the program's arguments.
var Args = os.Args[1:]

// Display prints each value on a line of its own.
func Display(values ...any) {
	for _, value := range values {
		fmt.Println(value)
	}
}

// Set keeps a value by its name. The calls of a session share it, in every language; it may be all that JSON has.
func Set(name string, value any) error {
	path, err := place(name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(text) > 1<<20 {
		return errors.New("a value has 1 MiB at most; write it to a file")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+"~", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+"~", path)
}

// Get reads a value that was kept, as json.Unmarshal does; nobody kept one if the error is fs.ErrNotExist.
func Get(name string, value any) error {
	path, err := place(name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}

// Call calls a tool of an upstream server, for instance Call("github.list_issues", map[string]any{"repo": "x"}).
func Call(tool string, arguments any) (any, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	command := exec.Command("mcp", "call", tool, "-")
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text), &out, &said
	if err := command.Run(); err != nil {
		var missing *exec.Error
		if errors.As(err, &missing) {
			return nil, errors.New("this run was given no servers: see `hotcell servers`")
		}
		return nil, errors.New(strings.TrimSpace(said.String()))
	}
	var value any
	return value, json.Unmarshal(out.Bytes(), &value)
}

var named = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

func place(name string) (string, error) {
	if !named.MatchString(name) {
		return "", fmt.Errorf("not a name for a value: %q", name)
	}
	return filepath.Join(os.Getenv("HOME"), ".hotcell", "vars", name), nil
}
