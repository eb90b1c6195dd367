package docs

import (
	"path/filepath"
	"slices"
	"testing"
)

// notASource has the files of keyfuncs/testdata that no event source sends.
var notASource = []string{"s3-malformed.json"}

// TestSAMEvents checks that sam-local has the events with which the key
// functions are tested, and one of every source.
func TestSAMEvents(t *testing.T) {
	t.Parallel()
	tested, sam := baseNames(t, "../keyfuncs/testdata/*.json"), baseNames(t, "../sam-local/events/*.json")
	for _, name := range notASource {
		if !slices.Contains(tested, name) {
			t.Errorf("keyfuncs/testdata has no %s, which notASource names", name)
		}
	}
	for _, name := range sam {
		if slices.Contains(notASource, name) || !slices.Contains(tested, name) {
			t.Errorf("sam-local/events/%s is not among the events of keyfuncs/testdata", name)
			continue
		}
		if read(t, "../sam-local/events/"+name) != read(t, "../keyfuncs/testdata/"+name) {
			t.Errorf("sam-local/events/%s differs from keyfuncs/testdata/%[1]s: copy it", name)
		}
	}
	for _, name := range tested {
		if !slices.Contains(notASource, name) && !slices.Contains(sam, name) {
			t.Errorf("sam-local/events lacks %s of keyfuncs/testdata: copy it", name)
		}
	}
}

func baseNames(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	for i, file := range files {
		files[i] = filepath.Base(file)
	}
	return files
}
