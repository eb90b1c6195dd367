package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// stray is a store with a row before and behind one that cannot be read, which
// then does not answer.
type stray struct{ driver.Inspector }

func (stray) Rows(context.Context, string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		_ = yield(driver.NamedRow{Name: "/a"}, nil) && yield(driver.NamedRow{Name: "README.md"}, errors.New("no row")) &&
			yield(driver.NamedRow{Name: "/b"}, nil) && yield(driver.NamedRow{}, errDenied)
	}
}

// TestReadable: a row that cannot be read is reported once, and hides no other.
func TestReadable(t *testing.T) {
	t.Parallel()
	var skipped []string
	store := inspect.Readable(stray{}, func(name string, err error) { skipped = append(skipped, fmt.Sprint(name, ": ", err)) })
	for range 2 {
		var names []string
		var last error
		for row, err := range store.Rows(t.Context(), "") {
			names, last = append(names, row.Name), err
		}
		if !slices.Equal(names, []string{"/a", "/b", ""}) || !errors.Is(last, errDenied) {
			t.Errorf("rows %q, error %v", names, last)
		}
	}
	if !slices.Equal(skipped, []string{"README.md: no row"}) {
		t.Errorf("skipped %q", skipped)
	}
	for row := range store.Rows(t.Context(), "") {
		if row.Name == "/b" {
			break // and nothing is yielded after that
		}
	}
}
