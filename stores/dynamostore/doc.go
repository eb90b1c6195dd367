// Package dynamostore keeps locks in an Amazon DynamoDB table: one UpdateItem
// to acquire and one to release, and no reads. [Transact] completes an event in
// one transaction with the handler's own writes, so that they happen exactly
// once.
//
// Package middleware uses the table in LOCK_TABLE_NAME by default. Outside
// Lambda, or with a table or a client of your own, write
//
//	store, err := dynamostore.Open(ctx, "locks") // or dynamostore.New(client, "locks")
//
// and pass the store to lock.New or middleware.Store. The table has the
// partition key lock (String), no sort key, and TTL on deleteAfter. Templates
// that create it are in
// https://github.com/lambdalock/lambdalock/blob/main/docs/STORES.md#dynamodb.
//
// # Permissions
//
//	{
//	  "Version": "2012-10-17",
//	  "Statement": [
//	    {"Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": "ARN of the table", "Condition": {
//	      "ForAllValues:StringLike": {"dynamodb:LeadingKeys": "NAMESPACE/*"}, "Null": {"dynamodb:LeadingKeys": "false"}
//	    }}
//	  ]
//	}
//
// The condition limits a function to the rows of its namespace. Read needs
// dynamodb:GetItem too, and Rows dynamodb:Scan: both are for people with a
// tool, such as the command lambdalock.
//
// # The row
//
// One item per lock name, small enough for one write unit of 1 KB with a name
// of usual length, and readable in the console:
//
//	attribute    type  present       meaning
//	lock         S     always        partition key: namespace, "/", name
//	fence        N     once held     fencing token: the claim's stamp in microseconds since 1970
//	stamp        S     always        orders claims (UTC, microseconds): when the last owner acquired, or a later claim was abandoned
//	ownerToken   S     while held    token of the acquisition that holds the name; in a cooldown a new one, which no acquisition has
//	heldUntil    S     while held    end of the lease (UTC, microseconds)
//	holder       S     while held    who holds it: function, request id, log stream; not in a cooldown
//	event        S     while held    the event being worked on, if the key has one
//	payload      S     while held    digest of its payload, if the key has one
//	marks        N     while held    how many runs others have asked the holder for, with Latest, and until an event is completed; -1: no more
//	takesMarks   N     with Latest   1 while the holder looks at marks
//	interruptedFor N with OnInterrupted  how many milliseconds after the end of the lease the event counts as interrupted if the holder dies
//	interrupted  M     after a death interrupted event → M: holder, since, until (N as in completed), payload
//	cooldown     S     in a cooldown token of the acquisition that has ended: with HoldAtLeast the name stays held until heldUntil
//	completed    M     with events   completed event → when it is forgotten (N: epoch milliseconds; the decimals give the order of completion, and when that was)
//	payloads     M     with payloads completed event → digest of its payload
//	highestOrder S     with orders   highest completed order
//	resultBody   B     with Replay   result of resultEvent
//	resultEvent  S     with Replay
//	line         N     with waiters  the last place in line that a waiter was given: only paces them, see driver.Line
//	served       N     with waiters  the place of the last owner that had one
//	deleteAfter  N     always        the table's TTL attribute (epoch seconds): garbage collection, never the lease
//	rowFormat    N     never yet     reserved: rows that have it are refused, so that a later format can lock this one out
//
// A row that only a claim which was given up has written has no more than lock,
// stamp and deleteAfter.
//
// Times that are compared are strings of fixed width (RFC 3339), which sort
// like times and are readable.
//
// The completed events are a map, because the condition looks up one of them by
// its name. They are forgotten in the order of completion, and neither a map
// nor the expiry times have that order, because Remember may differ between
// functions, or change. So the first five decimals of an expiry time are the
// event's place in it. The next eight are how many seconds before that time it
// was completed. They cost four bytes, and package lock leaves them out where
// those would make the row cost another write unit.
//
// # The condition of an acquire
//
// P and F numbers are the promises and faults of
// https://github.com/lambdalock/lambdalock/blob/main/docs/PROMISES.md.
//
//	clause                                                          answers
//	attribute_not_exists(rowFormat)                                 F41: a newer version wrote the row
//	and (attribute_not_exists(ownerToken)                           the name has no holder …
//	     or heldUntil < :now                                        F19, F23: … or its holder died; the claimant decides, not TTL
//	        and attribute_not_exists(interruptedFor))               F19: … and leaves no event; see below
//	    and (stamp absent or stamp < :stamp)                        F3, F44: … and this is not a late copy of a claim that has ended
//	 or (ownerToken = :token and heldUntil <= :until                F1: our own claim, repeated; not after a renewal …
//	     and stamp <= :stamp)                                       F44: … and not after a later round of the same claim
//	and (completed.<event> absent or completed.<event> < :millis)   P5: the event is not completed
//	and (highestOrder absent or highestOrder < :order)              the event is not stale
//
// A dead holder with interruptedFor refuses the claim. A second request then
// has ownerToken = :dead and heldUntil < :now in place of that clause, and sets
// interrupted to what it was with the event of that holder. It needs the item
// of the refusal, so a server that does not return it grants no such name
// before the row is deleted.
//
// Renewal and release require ownerToken = :token and a known row format (F4,
// F5, F21, F41), so a late owner changes nothing. A claim that is given up
// raises the stamp, regardless of the owner (F2, F44), which rejects every copy
// of it that arrives later. A copy that arrived earlier is recognised by its
// token and released, usually in the same request.
//
// While a row is held, deleteAfter lies a year ahead, as far as anything may be
// remembered (366 days): only the owner knows what the row remembers and for
// how long, and its release sets the exact time (F47). A claim has not read the
// row, and DynamoDB's expressions have no maximum function. So if a holder dies
// and the name is not claimed again, its row stays for a year. That of a claim
// which was given up stays for two, because the row may be in a cooldown of a
// year and have to remember for another one after that.
//
// # Transactions
//
// The completion in the transaction of [Transact] is the same update under the
// same condition. So it is applied only while the token owns the row, and
// removes the token: of all attempts and late copies at most one is applied
// (F3, F5, F21).
//
// # Facts relied on
//
// An answer about a failed condition can contain the item
// (ReturnValuesOnConditionCheckFailure). A failed condition costs as much as a
// write of the item, one write unit per KB:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html.
// TTL is in epoch seconds, and deletes an item within a few days after it has
// expired:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html.
// The largest item has 400 KB, the largest partition key 2,048 bytes:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html.
// A ClientRequestToken makes DynamoDB recognise a repeated transaction for 10
// minutes; a canceled transaction lists a reason for each action:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html.
// DescribeEndpoints needs no permission, except through a VPC endpoint:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/inter-network-traffic-privacy.html.
//
// A global table with asynchronous replication evaluates conditions per Region,
// so it cannot hold locks. Use one Region, or multi-Region strong consistency.
package dynamostore
