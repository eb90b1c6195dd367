//go:build !demo

package storeurl

import (
	"crypto/tls"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// openRedis opens one server or, if there are several URLs, a quorum.
func openRedis(text string) (driver.Store, error) {
	servers, err := Redis(text)
	if err != nil {
		return nil, err
	}
	if len(servers) == 1 {
		return redisstore.New(servers[0])
	}
	var clients []redis.Scripter
	for _, s := range servers {
		clients = append(clients, s)
	}
	return redisquorum.New(clients...)
}

// Redis returns a client for each server that the URL names: one, or those of a
// quorum. Messages name servers by their place in the list, because any part of
// a malformed URL may be a password.
func Redis(text string) ([]*redis.Client, error) {
	parts := strings.Split(text, ",")
	for i, part := range parts {
		scheme, _, _ := strings.Cut(part, "://")
		if !slices.Contains(schemes, strings.ToLower(scheme)) || scheme == part {
			return nil, wrong("server %d of the store's URL has no redis:// or rediss:// of its own: repeat it after each comma; a comma in a password is %%2C", i+1)
		}
	}
	if len(parts)%2 == 0 {
		return nil, wrong("the store's URL names %d servers, and one less can lose as many without harm: name 1 server, or 3, 5 or another odd number for a quorum", len(parts))
	}
	var clients []*redis.Client
	seen := map[string]int{}
	for i, part := range parts {
		options, err := redisServer(part, i+1)
		if err != nil {
			return nil, err
		}
		if other := seen[options.Addr]; other > 0 {
			return nil, wrong("servers %d and %d of the store's URL are the same: a quorum needs independent servers", other, i+1)
		}
		seen[options.Addr] = i + 1
		clients = append(clients, redis.NewClient(options))
	}
	logging.Disable() // the errors of requests say the same
	return clients, nil
}

// schemes are those of a server.
var schemes = []string{"redis", "rediss", "valkey", "valkeys", "unix"}

// redisServer reads the URL of the n-th server.
func redisServer(text string, n int) (*redis.Options, error) {
	const form = "write redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS"
	u, err := url.Parse(text)
	if err != nil {
		return nil, wrong("server %d of the store's URL is malformed: %s; other characters in a password are percent-encoded", n, form)
	}
	_, hasPassword := u.User.Password()
	switch {
	case strings.Contains(u.Path+u.RawQuery+u.Fragment, "@"):
		return nil, wrong("server %d of the store's URL has an @ after the host: if it is part of the password, or follows it, percent-encode the password's / ? # and @", n)
	case u.Scheme == "unix":
		return unixSocket(u, n)
	case u.Hostname() == "":
		return nil, wrong("server %d of the store's URL has no host: %s", n, form)
	case !hasPassword && u.User.Username() != "":
		return nil, wrong("server %d of the store's URL has a user without a password: write redis://USER:PASSWORD@HOST, or redis://:PASSWORD@HOST", n)
	case u.Fragment != "":
		return nil, wrong("server %d of the store's URL has a #: %s", n, form)
	}
	if _, err := parse(u.RawQuery); err != nil {
		return nil, err
	}
	o := redisOptions(u)
	if u.Port() == "" {
		o.Addr = strings.TrimSuffix(u.Host, ":") + ":6379"
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
			return nil, wrong("server %d of the store's URL has a database that is not a number: %s", n, form)
		}
	}
	if u.Scheme == "rediss" || u.Scheme == "valkeys" {
		o.TLSConfig = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	return o, nil
}

func redisOptions(u *url.URL) *redis.Options {
	password, _ := u.User.Password()
	return &redis.Options{
		Addr: u.Host, Username: u.User.Username(), Password: password,
		DialerRetries:            1, // more would outlast a request, and hide why the dial failed
		DialerRetryTimeout:       1, // 1 ns: the last try is followed by this time too
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// unixSocket reads the URL of the n-th server, which listens on a socket. It
// has the form of redis.ParseURL.
func unixSocket(u *url.URL, n int) (*redis.Options, error) {
	const form = "write unix:///PATH/OF/THE/SOCKET[?db=DATABASE]"
	if u.Host != "" || strings.Trim(u.Path, "/") == "" {
		return nil, wrong("server %d of the store's URL has no path of a socket: %s, with three slashes", n, form)
	}
	query, err := parse(u.RawQuery, "db")
	if err != nil {
		return nil, err
	}
	o := redisOptions(u)
	o.Network, o.Addr = "unix", u.Path
	if db := query["db"]; db != "" {
		if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
			return nil, wrong("server %d of the store's URL has a database that is not a number: %s", n, form)
		}
	}
	return o, nil
}
