// Package s3store keeps locks in an Amazon S3 bucket, or on a server with the
// same API, without a table. Choose it for infrequent work, such as a cron job
// or a deployment, where a bucket already exists. DynamoDB is faster, and
// cheaper per lock.
//
//	client := s3.NewFromConfig(cfg)
//	store := s3store.New(client, "my-bucket", "locks")
//	lambda.Start(middleware.WithLock(keyfuncs.S3Object, handle, middleware.Store(store)))
//
// # The object
//
// Each lock name has one object, which holds its row in JSON. Package
// objectstore documents the fields, the key, and how the store updates the
// object.
//
// # The requests
//
// Acquiring and releasing a lock takes two PutObject requests for a new name; a
// GetObject and two PutObject for a name that was used before; and two
// PutObject if this process used it last. A refused claim takes one GetObject.
// If the store wrongly guessed that the name was new or free, one more
// PutObject, which S3 refuses, comes first. A renewal takes one PutObject.
// Every write is conditional: If-None-Match: * for a new object, If-Match with
// the ETag for an existing one. S3 answers 412 if the condition does not hold,
// and 409 or 404 if another write or a deletion came first:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html.
// Reads are strongly consistent:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel.
//
// S3's clock alone decides when a lease ends, by the Date and Last-Modified
// headers of one response, so the clocks of functions may differ. Both headers
// are in whole seconds, so a dead holder's lock can be acquired up to two
// seconds after its lease has ended.
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
// A write with If-Match needs s3:GetObject too (page on conditional writes).
// Listing rows also needs s3:ListBucket on the bucket; functions do not list.
// Without that action S3 answers 403 instead of 404 for an object that does not
// exist. The store then tries to create it, which costs one more request if it
// expected the name to be in use:
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html. A bucket
// that is encrypted with your own KMS key needs kms:GenerateDataKey and
// kms:Decrypt on the key.
//
// # Cost
//
// Every request is billed, including those whose condition fails:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html.
// A PutObject costs about 12 times as much as a GetObject, so a million locks
// cost about as much as two million PutObject requests:
// https://aws.amazon.com/s3/pricing/.
//
// # Garbage
//
// The store never deletes an object, because its fence, and the protection
// against late copies of a request, would be lost. Add a lifecycle rule for the
// prefix that deletes objects some days after their last write: more days than
// events are remembered (the option Remember), and more than the longest lease.
// A versioned bucket keeps every write, so the rule must also delete noncurrent
// versions, after one day:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html.
// With Object Lock and a default retention period, no version can be deleted
// before the period ends.
//
// # Limits
//
//   - Use one bucket, in one Region. A replicated bucket or a Multi-Region
//     Access Point cannot hold locks, because each bucket checks conditions on
//     its own.
//   - It does not suit contended names. Every attempt is a request, and of
//     several concurrent writes all but one must be repeated.
//   - S3 responds in tens of milliseconds, and accepts about 3,500 writes per
//     second per prefix:
//     https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html.
//   - Access points of Amazon FSx volumes have no conditional writes:
//     https://docs.aws.amazon.com/fsx/latest/ONTAPGuide/access-points-for-fsxn-object-api-support.html
//     The store refuses those that it recognises by their alias.
//   - Some servers with the S3 API ignore conditions, or check them before they
//     write, so that several concurrent writes may succeed. Before the first
//     write to an address that is not S3's, or through an access point, the
//     store tests for that, with 36 writes and 4 reads in the time of five
//     requests. If the server fails, the store returns a *driver.ConfigError.
//     The store's Check method runs the test during INIT. [objectstore.Probe]
//     describes what it writes.
//   - A proxy must pass on the server's Date header, or its clock must agree
//     with the server's; nginx replaces the header. The same test finds a proxy
//     whose clock is at least two seconds ahead, or ten behind:
//     https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_hide_header
package s3store
