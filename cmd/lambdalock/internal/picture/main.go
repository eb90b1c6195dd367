// Command picture makes the README's images of the demo, docs/demo-light.png
// and docs/demo-dark.png, from the page that the demo wrote. A headless browser
// draws them.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const (
	width = 880  // about that of a README, in CSS pixels
	scale = 2    // for dense screens
	tall  = 1600 // higher than the page; what is empty is cut off
)

// macOS is where Chrome is on a Mac.
const macOS = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: picture PAGE FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(page, folder string) error {
	browser, err := findBrowser()
	if err != nil {
		return err
	}
	source, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	for theme, applies := range map[string]string{"light": "not all", "dark": "all"} {
		themed := bytes.ReplaceAll(source, []byte("@media (prefers-color-scheme: dark)"), []byte("@media "+applies))
		shot, err := screenshot(browser, themed)
		if err != nil {
			return err
		}
		name := filepath.Join(folder, "demo-"+theme+".png")
		if err := write(name, reduce(crop(shot))); err != nil {
			return err
		}
		fmt.Println(name)
	}
	return nil
}

// findBrowser returns a browser of the Chromium family. CHROME names another.
func findBrowser() (string, error) {
	for _, name := range []string{
		os.Getenv("CHROME"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
		macOS,
	} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path, nil
		}
	}
	return "", errors.New("found no browser to draw the images with: install Chromium or Chrome, or name one in CHROME")
}

// screenshot lets the browser draw a page.
func screenshot(browser string, page []byte) (image.Image, error) {
	dir, err := os.MkdirTemp("", "lambdalock-picture")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	html, shot := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.png")
	if err := os.WriteFile(html, page, 0o600); err != nil {
		return nil, err
	}
	args := []string{
		"--headless", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + dir, "--screenshot=" + shot,
		fmt.Sprintf("--window-size=%d,%d", width, tall), fmt.Sprintf("--force-device-scale-factor=%d", scale), "file://" + html,
	}
	if os.Geteuid() == 0 { // the browser's sandbox refuses to run for root
		args = append([]string{"--no-sandbox"}, args...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, browser, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", browser, err, out)
	}
	f, err := os.Open(shot)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return png.Decode(f)
}

// crop cuts off the empty rows at the bottom.
func crop(m image.Image) image.Image {
	b := m.Bounds()
	empty := m.At(b.Min.X, b.Max.Y-1)
	for y := b.Max.Y - 1; y > b.Min.Y; y-- {
		for x := b.Min.X; x < b.Max.X; x++ {
			if m.At(x, y) != empty {
				b.Max.Y = min(b.Max.Y, y+1+2*scale)
				cropped := image.NewRGBA(b)
				draw.Draw(cropped, b, m, b.Min, draw.Src)
				return cropped
			}
		}
	}
	return m
}

// reduce keeps the 256 most frequent colours, which makes the file a third as
// large and is not seen: a page has few colours, and the rest are edges of
// letters.
func reduce(m image.Image) *image.Paletted {
	count := map[color.Color]int{}
	b := m.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[m.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	reduced := image.NewPaletted(b, colors[:min(256, len(colors))])
	draw.Draw(reduced, b, m, b.Min, draw.Src)
	return reduced
}

func write(name string, m image.Image) error {
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, m); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}
