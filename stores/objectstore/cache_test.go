package objectstore

import (
	"fmt"
	"testing"
)

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	var c cache
	for i := range 20_000 {
		c.put(fmt.Sprint(i), Object{Body: make([]byte, i%3000), Version: "1"})
		c.put(fmt.Sprint(i), Object{Body: make([]byte, i%2000), Version: "2"})
		c.get("98") // is used again and again
		if i%3 == 0 {
			c.drop(fmt.Sprint(i))
		}
		if c.size > cacheSize || len(c.entries) != c.recent.Len() {
			t.Fatalf("%d bytes, %d entries, %d in the list", c.size, len(c.entries), c.recent.Len())
		}
	}
	if _, ok := c.get("100"); ok {
		t.Error("the one used least was kept")
	}
	if _, ok := c.get("98"); !ok {
		t.Error("the one used most was not kept")
	}
	if n := len(c.entries); n < 2000 {
		t.Errorf("only %d entries", n)
	}
	c.put("huge", Object{Body: make([]byte, 2*cacheSize)})
	if c.size != 0 || len(c.entries) != 0 {
		t.Errorf("%d bytes, %d entries after one that is too large", c.size, len(c.entries))
	}
}
