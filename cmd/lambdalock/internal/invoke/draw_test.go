package invoke

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestWidth(t *testing.T) {
	for name, c := range map[string]struct {
		flag    int
		columns string
		want    int
	}{
		"flag":                    {70, "90", 70},
		"COLUMNS":                 {0, "90", 90},
		"COLUMNS makes no sense":  {0, "-1", 80},
		"no terminal, no COLUMNS": {0, "", 80},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("COLUMNS", c.columns)
			out := expect.Value(os.Create(filepath.Join(t.TempDir(), "out")))(t)
			defer func() { _ = out.Close() }()
			if got := (drawing{Width: c.flag}).width(out); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
