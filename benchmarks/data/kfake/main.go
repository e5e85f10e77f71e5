// Command kfake runs franz-go's fake cluster of one broker at the port that its argument names,
// until its standard input ends. Its topics have one partition and are made when asked for.
package main

import (
	"io"
	"log"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	cluster, err := kfake.NewCluster(
		kfake.Ports(port),
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(1),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	_, _ = io.Copy(io.Discard, os.Stdin)
}
