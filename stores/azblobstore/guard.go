package azblobstore

import (
	"context"
	"net/url"
	"slices"
	"strings"
)

// microsofts reports whether an address belongs to Azure itself. Clouds that
// are not listed here, and custom domains, are probed like any other server.
// https://learn.microsoft.com/azure/storage/common/storage-account-overview
func microsofts(address string) bool {
	u, err := url.Parse(address)
	return err == nil && slices.ContainsFunc(domains, func(domain string) bool { return strings.HasSuffix(u.Hostname(), domain) })
}

var domains = []string{".core.windows.net", ".storage.azure.net", ".core.usgovcloudapi.net", ".core.chinacloudapi.cn"}

// Check implements [driver.Checker]: it probes the server unless it is Azure.
func (o *objects) Check(ctx context.Context) error {
	if o.known {
		return nil
	}
	return o.probe.Run(ctx, unguarded{o})
}

// unguarded writes blobs without probing the server first, for the probe
// itself.
type unguarded struct{ *objects }

// Put implements [objectstore.Objects].
func (u unguarded) Put(ctx context.Context, key string, body []byte, version string) (string, error) {
	return u.put(ctx, key, body, version)
}
