// Command copier copies records in transactions with franz-go: SERVERS NAME SOURCE TARGET HOLD_MS.
//
// A transaction has copies and the group's offset, and is held open for a while. On any error the
// program ends; its next life begins where the group is.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const sessionTimeout = 6 * time.Second

func main() {
	servers, name, source, target := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	holdMs, err := strconv.Atoi(os.Args[5])
	if err != nil {
		log.Fatal(err)
	}
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.TransactionalID(name),
		kgo.ConsumerGroup(name),
		kgo.ConsumeTopics(source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.SessionTimeout(sessionTimeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		log.Fatal(err)
	}
	for {
		if err := copySome(session, target, time.Duration(holdMs)*time.Millisecond); err != nil {
			log.Fatal(err)
		}
	}
}

// copySome copies what a poll gives in a transaction. Where the group has given a partition to
// another member meanwhile, the session aborts the transaction and goes back.
func copySome(session *kgo.GroupTransactSession, target string, hold time.Duration) error {
	ctx := context.Background()
	fetches := session.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		return err
	}
	if err := session.Begin(); err != nil {
		return err
	}
	var copies []*kgo.Record
	fetches.EachRecord(func(record *kgo.Record) {
		copies = append(copies, &kgo.Record{
			Topic: target, Partition: record.Partition, Value: record.Value,
		})
	})
	if err := session.ProduceSync(ctx, copies...).FirstErr(); err != nil {
		return err
	}
	time.Sleep(hold)
	_, err := session.End(ctx, kgo.TryCommit)
	return err
}
