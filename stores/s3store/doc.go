// Package s3store keeps locks in an Amazon S3 bucket, or in a server with the
// same API: no table at all. Choose it for work that is rare, such as a cron
// job or a deployment, and where a bucket exists already. DynamoDB is faster,
// and cheaper per lock.
//
//	client := s3.NewFromConfig(cfg)
//	store := s3store.New(client, "my-bucket", "locks")
//	lambda.Start(middleware.WithLock(keyfuncs.S3Object, handle, middleware.Store(store)))
//
// # The object
//
// There is one object per lock name, a row in JSON. Package objectstore
// documents its fields, its key, and the rule.
//
// # The requests
//
// An acquire and a release are two PutObject for a new name; a GetObject and
// two PutObject for one that was used before; and two PutObject if this process
// used it last. A refused claim is one GetObject. Where the store first took
// the name for a new or a free one, each of these has one PutObject more, which
// S3 refuses. A renewal is one PutObject. Each write has a condition:
// If-None-Match: * for a new object, If-Match with the ETag for another. S3
// answers 412 if the condition does not hold, and 409 or 404 if another write
// or a deletion came first:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html.
// A read after a write sees that write:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel.
//
// The time at which a lease ends is judged by S3's clock alone, by the headers
// Date and Last-Modified of one answer, so the clocks of functions may differ.
// Both headers are whole seconds, so a dead holder's lock can be taken at the
// latest two seconds after its lease has ended.
// https://docs.aws.amazon.com/AmazonS3/latest/API/RESTCommonResponseHeaders.html
//
// # Permissions
//
//	{
//	  "Version": "2012-10-17",
//	  "Statement": [
//	    {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::my-bucket/locks/*"}
//	  ]
//	}
//
// A write with If-Match needs s3:GetObject too (page on conditional writes). To
// list rows, a person also needs s3:ListBucket on the bucket. A function does
// not: without that action S3 answers 403 instead of 404 if an object does not
// exist, and the store then tries to create it, which costs one request more
// where it took a new name for a known one:
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html. A bucket
// that is encrypted with your own KMS key needs kms:GenerateDataKey and
// kms:Decrypt on the key.
//
// # Cost
//
// Each request is billed, those that fail a condition too:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html.
// A PutObject costs about 12 times as much as a GetObject, so a million
// acquisitions with their releases cost about as much as two million PutObject:
// https://aws.amazon.com/s3/pricing/.
//
// # Garbage
//
// The store never deletes an object: with it would go the fence, and the
// protection from late copies of a request. Let a lifecycle rule for the prefix
// delete objects some days after they were last written: more days than events
// are remembered (the option Remember), and more than the longest lease.
// A bucket with versions keeps every write; there the rule must also delete
// noncurrent versions, after one day:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html.
// With Object Lock and a default retention, no write can be deleted before that
// has ended.
//
// # Limits
//
//   - One bucket, in one Region. A replicated bucket, or a Multi-Region Access
//     Point, cannot hold locks: each bucket checks conditions by itself.
//   - Not for hot names. If many claim one name at the same time, each attempt
//     is a request, and of the writes that meet, all but one are repeated.
//   - S3 answers in tens of milliseconds, and takes about 3,500 writes a second
//     per prefix:
//     https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html.
//   - Access points of Amazon FSx volumes have no conditional writes:
//     https://docs.aws.amazon.com/fsx/latest/ONTAPGuide/access-points-for-fsxn-object-api-support.html
//     The store refuses those that it recognises by their alias.
//   - Some servers with the API of S3 ignore conditions, or check them before
//     they write, so that of several writers more than one may succeed. Before
//     its first write to an address that is not S3's, and through an access
//     point, the store checks that, with 36 writes and 4 reads, which take as
//     long as five requests. It returns a *driver.ConfigError if the server
//     fails. The method Check of the store does so during INIT:
//     [objectstore.Probe] says what it writes.
//   - A proxy must pass on the server's Date, or have the same time: nginx puts
//     its own time there. The same check finds a proxy that is two seconds or
//     more ahead at that moment, or ten behind:
//     https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_hide_header
package s3store
