package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// pkg is a package with its types.
type pkg struct {
	dir, path string
	fset      *token.FileSet
	files     []*ast.File
	names     []string // of the files
	info      *types.Info
}

// listed is what go list says of a package.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// load parses and checks the package in dir. The types of the packages that it
// imports come from the build cache.
func load(ctx context.Context, dir string) (*pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly", ".")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var own listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			own = l
		}
	}
	p := &pkg{dir: dir, path: own.ImportPath, fset: token.NewFileSet(), info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	for _, name := range own.GoFiles {
		name = filepath.Join(own.Dir, name)
		f, err := parser.ParseFile(p.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files, p.names = append(p.files, f), append(p.names, name)
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	check := types.Config{Importer: importer.ForCompiler(p.fset, "gc", lookup)}
	_, err = check.Check(p.path, p.fset, p.files, p.info)
	return p, err
}
