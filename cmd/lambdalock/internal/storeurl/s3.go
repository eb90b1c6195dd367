//go:build !demo

package storeurl

import (
	"context"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// bucketName is the name of a bucket. Directory buckets and access points have
// such names too.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func openS3(ctx context.Context, text string) (driver.Store, error) {
	const form = "write s3://BUCKET[/PREFIX]"
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" {
		return nil, wrong("the store's URL is malformed: %s, with other characters percent-encoded", form)
	}
	switch {
	case u.User != nil:
		return nil, wrong("the store's URL has credentials: leave them out, and set AWS_PROFILE or the other AWS variables")
	case u.Host == "":
		return nil, wrong("the store's URL names no bucket: %s", form)
	case !bucketName.MatchString(u.Host):
		return nil, wrong("%q is not the name of a bucket: %s, and the address of another server as ?endpoint=URL", u.Host, form)
	}
	p, err := parse(u.RawQuery, "region", "endpoint", "path-style")
	if err != nil {
		return nil, err
	}
	pathStyle := false
	if v := p["path-style"]; v != "" {
		if pathStyle, err = strconv.ParseBool(v); err != nil {
			return nil, wrong("the parameter path-style of the store's URL is %q: write true or false", v)
		}
	}
	cfg, err := awsConfig(ctx, p)
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle, o.BaseEndpoint = pathStyle, p.endpoint(o.BaseEndpoint)
	})
	return s3store.New(client, u.Host, strings.TrimPrefix(u.Path, "/")), nil
}
