package objectstore

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

const (
	longestKey = 200 // bytes; a file name has at most 255
	// kept is the length of the part of a long key that precedes the digest.
	kept = longestKey - 1 - 2*sha256.Size
)

// Key returns the object key for a lock name: the name with every byte
// percent-encoded except A-Z, a-z, 0-9, "_", "-" and "."; a leading or trailing
// "." is encoded too. A key of more than 200 bytes is truncated and ends with
// "~" and the SHA-256 digest of the name in hexadecimal.
func Key(name string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		inside := i > 0 && i < len(name)-1
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' && inside {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	key := b.String()
	if len(key) <= longestKey {
		return key
	}
	digest := sha256.Sum256([]byte(name))
	return whole(key[:kept]) + "~" + hex.EncodeToString(digest[:])
}

// whole removes an incomplete percent-encoded byte from the end of a key.
func whole(key string) string {
	if i := strings.LastIndexByte(key, '%'); i >= 0 && i > len(key)-3 {
		return key[:i]
	}
	return key
}

// nameOf returns the name that maps to the key or, for a truncated key, the
// beginning of the name. It reports false if no name maps to it.
func nameOf(key string) (name string, long, ok bool) {
	beginning, digest, long := strings.Cut(key, "~")
	name, err := url.PathUnescape(beginning)
	if err != nil || name == "" {
		return "", false, false
	}
	if long {
		return name, true, len(digest) == 2*sha256.Size
	}
	return name, false, Key(name) == key
}
