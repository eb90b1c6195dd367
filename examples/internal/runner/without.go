package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// protection is one piece of an example that keeps it from harm: an option, a
// wrapper or the form of a key. The runner also plays the example without it,
// and expects the harm: what no act notices protects from nothing.
type protection struct {
	what  string
	edits []string // pairs: a text that the example's code has once, and what replaces it
	act   act      // the one that shows the harm
	harm  string   // what it says, or a part of it
}

// binary returns the name of the executable without the i-th protection.
func (x example) binary(i int) string { return fmt.Sprintf("%s-without-%d", x.name, i) }

// playWithout plays the example without each of its protections.
func (x example) playWithout(ctx context.Context, root, bin string, r *report) {
	for i, p := range x.without {
		var said strings.Builder
		harmed := &report{Logger: log.New(&said, "", 0)}
		x.perform(ctx, root, filepath.Join(bin, x.binary(i)), harmed, p.act)
		harm := ""
		for line := range strings.Lines(said.String()) {
			if text, failed := strings.CutPrefix(line, failure); failed && harm == "" && strings.Contains(text, p.harm) {
				harm = strings.TrimSpace(text)
			}
		}
		if r.Printf("without %s: %.200s", p.what, harm); harm == "" {
			r.fail("without %s, %q was expected:\n%s", p.what, p.harm, said.String())
		}
	}
}

// overlay writes the code of each example without each protection to a folder,
// and tells the go command to read it as packages of the module.
func overlay(root, folder string, chosen []example) (file string, packages []string, err error) {
	if root, err = filepath.Abs(root); err != nil {
		return "", nil, err
	}
	replace := map[string]string{}
	for _, x := range chosen {
		for i, p := range x.without {
			files, err := x.code(root)
			if err != nil {
				return "", nil, err
			}
			packages = append(packages, "./"+x.binary(i))
			for name, text := range files {
				path := filepath.Join(folder, x.binary(i)+"-"+name)
				if err := os.WriteFile(path, []byte(strings.NewReplacer(p.edits...).Replace(text)), 0o600); err != nil {
					return "", nil, err
				}
				replace[filepath.Join(root, x.binary(i), name)] = path
			}
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	file = filepath.Join(folder, "overlay.json")
	return file, packages, os.WriteFile(file, b, 0o600)
}

// code returns the files of the example's program.
func (x example) code(root string) (map[string]string, error) {
	names, err := filepath.Glob(filepath.Join(root, x.name, "*.go"))
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[filepath.Base(name)] = string(text)
	}
	return files, nil
}
