// Check reads a built site and fails if a link or an anchor leads nowhere, or
// if a page loads something from another host or is heavier than 300 KB:
//
//	go run ./check SITE REPOSITORY URL
//
// Other files of the repository are at URL, such as
// https://github.com/lambdalock/lambdalock/blob/main.
package main

import (
	"fmt"
	"io/fs"
	"log"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// maxWeight is how many bytes a page and what it loads may have, uncompressed.
const maxWeight = 300_000

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("usage: check SITE REPOSITORY URL")
	}
	s, err := check(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range s.problems {
		log.Print(p)
	}
	fmt.Printf("%d pages; links and anchors checked: %d; to other hosts, not followed: %d; heaviest page: %s, %d KB with what it loads\n",
		len(s.pages), s.links, s.others, s.heaviest, (s.weight+500)/1000)
	if len(s.problems) > 0 {
		os.Exit(1)
	}
}

// check checks the site in a folder.
func check(dir, repository, blob string) (*site, error) {
	s := &site{dir: dir, repository: repository, blob: blob, pages: map[string]*page{}}
	if err := filepath.WalkDir(dir, s.read); err != nil {
		return nil, err
	}
	if len(s.pages) == 0 {
		return nil, fmt.Errorf("%s has no pages", dir)
	}
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		s.check(name, s.pages[name])
	}
	return s, nil
}

// site is what has been read, and what came of it.
type site struct {
	dir, repository, blob string
	pages                 map[string]*page // by path in the site
	links, others, weight int
	heaviest              string
	problems              []string
}

// page is what a page leads to and what can be led to.
type page struct {
	size         int
	anchors      map[string]bool
	links, loads []string
}

func (s *site) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// read reads the file if it is a page.
func (s *site) read(name string, _ fs.DirEntry, err error) error {
	if err != nil || path.Ext(name) != ".html" {
		return err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	root, err := html.Parse(strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	p := &page{size: len(text), anchors: map[string]bool{}}
	name, err = filepath.Rel(s.dir, name)
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id" && p.anchors[a.Val]:
				s.problem("%s: two anchors are called %s", name, a.Val)
			case a.Key == "id":
				p.anchors[a.Val] = true
			case a.Key == "href" && n.Data == "a":
				p.links = append(p.links, a.Val)
			case a.Key == "srcset": // a browser loads this or the image beside it, which is as heavy
				p.links = append(p.links, a.Val)
			case a.Key == "href", a.Key == "src":
				p.loads = append(p.loads, a.Val)
			}
		}
	}
	s.pages[filepath.ToSlash(name)] = p
	return err
}

// check follows what the page links to and loads.
func (s *site) check(name string, p *page) {
	for _, link := range p.links {
		if err := s.follow(name, link); err != nil {
			s.problem("%s: %s: %v", name, link, err)
		}
	}
	weight := p.size
	for _, load := range p.loads {
		info, err := os.Stat(filepath.Join(s.dir, path.Join(path.Dir(name), load)))
		if err != nil {
			s.problem("%s loads %s: %v", name, load, err)
			continue
		}
		weight += int(info.Size())
	}
	if weight > maxWeight {
		s.problem("%s: %d bytes with what it loads, at most %d are allowed", name, weight, maxWeight)
	}
	if weight > s.weight {
		s.weight, s.heaviest = weight, name
	}
}

// follow returns an error if the link leads nowhere.
func (s *site) follow(name, link string) error {
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	whole := u.Scheme + "://" + u.Host + strings.Replace(u.Path, "/tree/", "/blob/", 1)
	if file, ok := strings.CutPrefix(whole, s.blob+"/"); ok {
		s.links++
		_, err := os.Stat(filepath.Join(s.repository, file))
		own := strings.TrimSuffix(strings.Replace(file, "README.md", "index.md", 1), ".md") + ".html"
		if err == nil && path.Ext(file) == ".md" && s.pages[own] == nil {
			return fmt.Errorf("%s is missing in hugo.yaml", file)
		}
		return err
	}
	if u.IsAbs() {
		s.others++
		return nil
	}
	s.links++
	target := name
	if u.Path != "" {
		target = path.Join(path.Dir(name), u.Path)
	}
	to := s.pages[target]
	if u.Fragment != "" && (to == nil || !to.anchors[u.Fragment]) {
		return fmt.Errorf("%s has no such anchor", target)
	}
	if to == nil {
		_, err = os.Stat(filepath.Join(s.dir, target))
	}
	return err
}
