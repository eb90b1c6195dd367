package objectstore

import (
	"container/list"
	"sync"
)

const (
	cacheSize = 8 << 20 // bytes, about
	overhead  = 512     // bytes per entry, in addition to its body
)

// cache holds the objects that were read or written most recently, so that a
// name that is used again need not be read first. It only saves requests: every
// write is conditional on the version.
type cache struct {
	mu      sync.Mutex
	entries map[string]*list.Element // values are *entry
	recent  list.List                // most recently used first
	size    int
}

type entry struct {
	key    string
	object Object
}

func (e *entry) size() int { return len(e.object.Body) + overhead }

func (c *cache) get(key string) (Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.entries[key]
	if element == nil {
		return Object{}, false
	}
	c.recent.MoveToFront(element)
	return element.Value.(*entry).object, true
}

func (c *cache) put(key string, o Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.entries[key])
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	e := &entry{key, o}
	c.entries[key] = c.recent.PushFront(e)
	c.size += e.size()
	for c.size > cacheSize {
		c.remove(c.recent.Back())
	}
}

func (c *cache) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.entries[key])
}

func (c *cache) remove(element *list.Element) {
	if element == nil {
		return
	}
	e := c.recent.Remove(element).(*entry)
	delete(c.entries, e.key)
	c.size -= e.size()
}
