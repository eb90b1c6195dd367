package keyfuncs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/lock"
)

// SessionCookie is [Caller] for a browser: of the cookies, only those with
// these names count, because others, such as those of analytics, change by
// themselves between two tries. It is for [HeaderKey]. Name every cookie by
// which your code knows the caller: one counts if its name begins with one of
// names, whatever the case and after a prefix such as __Host-. SessionCookie
// panics without names, if one cannot be that of a cookie, and if E has no HTTP
// request.
func SessionCookie[E any](names ...string) Func[E] {
	if len(names) == 0 {
		panic("lambdalock: keyfuncs.SessionCookie(): name the cookies by which your code knows the caller")
	}
	counted := make([]string, len(names))
	for i, name := range names {
		counted[i] = bareName(name)
		if counted[i] == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`=;,"`, r) }) {
			panic(fmt.Sprintf("lambdalock: keyfuncs.SessionCookie: %q is not the name of a cookie: write session for example", name))
		}
	}
	mustHoldRequest[E]("SessionCookie")
	return func(ctx context.Context, e E) (lock.Key, error) {
		return callerOf(ctx, e, func(cookie string) bool {
			name, _, _ := strings.Cut(cookie, "=")
			name = bareName(name)
			return slices.ContainsFunc(counted, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		})
	}
}

// anyCookie counts every cookie.
func anyCookie(string) bool { return true }

// bareName returns the name of a cookie in lower case and without the prefix
// that tells browsers how to treat it.
// https://datatracker.ietf.org/doc/html/draft-ietf-httpbis-rfc6265bis#name-the-set-cookie-header-field
func bareName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, prefix := range []string{"__host-http-", "__host-", "__http-", "__secure-"} {
		if bare, ok := strings.CutPrefix(name, prefix); ok {
			return bare
		}
	}
	return name
}

// allCookies returns the cookies that count, in an order that does not depend
// on the gateway.
func (r request) allCookies(counts func(cookie string) bool) []string {
	var all []string
	for _, header := range append(values("Cookie", r.headers, r.multi), r.cookies...) {
		for c := range strings.SplitSeq(header, ";") {
			if c = strings.TrimSpace(c); c != "" && counts(c) {
				all = append(all, c)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
