package main

import (
	"image"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCropCutsWhatIsEmpty(t *testing.T) {
	t.Parallel()
	m := image.NewRGBA(image.Rect(0, 0, 30, 100))
	m.Set(7, 40, color.White)
	if got, want := crop(m).Bounds(), image.Rect(0, 0, 30, 41+2*scale); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestReduceKeepsFrequentColours: only the rarest of too many colours change.
func TestReduceKeepsFrequentColours(t *testing.T) {
	t.Parallel()
	m := image.NewRGBA(image.Rect(0, 0, 300, 2))
	for x := range 300 {
		m.Set(x, 0, color.RGBA{uint8(x), uint8(x / 2), 0, 255})
		m.Set(x, 1, color.RGBA{uint8(x % 200), 0, 99, 255})
	}
	reduced := reduce(m)
	if n := len(reduced.Palette); n != 256 {
		t.Errorf("%d colours", n)
	}
	for x := range 100 { // those that occur twice
		if reduced.At(x, 1) != m.At(x, 1) {
			t.Errorf("%v became %v", m.At(x, 1), reduced.At(x, 1))
		}
	}
}

func TestNoBrowser(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CHROME", "")
	page := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(page, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(macOS); err == nil {
		t.Skip("there is a browser at", macOS)
	}
	if err := run(page, t.TempDir()); err == nil || !strings.Contains(err.Error(), "found no browser") {
		t.Error(err)
	}
}
