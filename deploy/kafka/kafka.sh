#!/usr/bin/env bash
# A single Apache Kafka 4.1 node (KRaft) on loopback, without Docker: for tests, benchmarks and chaos.
#
#   kafka.sh jars                          bring the server's jars (Maven) and check them against SHA256SUMS
#   kafka.sh start   DIR [PORT [CPORT [FILE [FORMAT_OPTION...]]]]
#                            run a node with its data, log and pid under DIR; returns when it answers
#   kafka.sh stop    DIR                   SIGTERM, wait for the clean end
#   kafka.sh kill    DIR                   kill -9
#   kafka.sh restart DIR                   start again with the same data and ports (after stop or kill)
#
# PORT defaults to 9092, CPORT (the controller) to PORT + 1. FILE holds properties over the node's own: listeners with
# TLS and SASL, say; "PLAINTEXT://127.0.0.1:PORT" stays the first, for the node itself. Further arguments go to Kafka's
# `kafka-storage format` (--add-scram), KAFKA_OPTS to its JVM. Needs Java 17 and, for `jars`, Maven.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
libs=$here/libs

die() { echo "kafka.sh: $*" >&2; exit 2; }
need() { command -v "$1" >/dev/null || die "$1 is missing: install it ($2)"; }

pinned() { (cd "$libs" 2>/dev/null && sha256sum --quiet --strict -c ../SHA256SUMS); }

jars() {
  need sha256sum "macOS: brew install coreutils"
  if ! pinned 2>/dev/null; then
    need java "Debian: apt-get install openjdk-17-jre-headless"
    need mvn "Debian: apt-get install maven"
    rm -rf "$libs"
    (cd "$here" && mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
      -DoutputDirectory=libs -DincludeScope=runtime) || die "Maven could not bring the jars"
    pinned || die "the jars differ from SHA256SUMS: not started"
  fi
  # Whatever lies there is on the class path.
  [ "$(find -L "$libs" -iname '*.jar' | wc -l)" -eq "$(wc -l <"$here/SHA256SUMS")" ] ||
    die "$libs has jars that SHA256SUMS does not name: not started"
}

configure() { # DIR PORT CPORT FILE
  mkdir -p "$1"
  cat >"$1/server.properties" <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:$3
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$3
advertised.listeners=PLAINTEXT://127.0.0.1:$2
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=$1/data
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
auto.create.topics.enable=false
EOF
  if [ -n "$4" ]; then cat "$4" >>"$1/server.properties"; fi # of a name given twice the last holds
  cat >"$1/log4j2.properties" <<EOF
rootLogger.level=warn
rootLogger.appenderRef.file.ref=file
appender.file.type=File
appender.file.name=file
appender.file.fileName=$1/kafka.log
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d %p %m (%c)%n
EOF
}

run() { # DIR FORMAT_OPTION...: start the configured node and wait until it listens
  local dir=$1 port pid
  shift
  port=$(sed -n 's/^listeners=PLAINTEXT:\/\/127.0.0.1:\([0-9]*\),.*/\1/p' "$dir/server.properties" | tail -n 1)
  need setsid "macOS: brew install util-linux, and put its bin on the PATH"
  if running "$dir"; then die "a node is running in $dir already (pid $(cat "$dir/pid"))"; fi
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then die "port $port is in use: choose another one"; fi
  if [ ! -f "$dir/data/meta.properties" ]; then
    java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile="$dir/log4j2.properties" -cp "$libs/*" kafka.tools.StorageTool \
      format --standalone -t ragtide-ragtide-ragt-g -c "$dir/server.properties" "$@" >"$dir/format.log" 2>&1 ||
      die "formatting failed: see $dir/format.log"
  fi
  # shellcheck disable=SC2086  # several options in one variable
  setsid java -Xms128m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 ${KAFKA_OPTS:-} \
    -Dlog4j2.configurationFile="$dir/log4j2.properties" -cp "$libs/*" kafka.Kafka "$dir/server.properties" >"$dir/stdout.log" 2>&1 </dev/null &
  pid=$!
  echo "$pid" >"$dir/pid"
  for _ in $(seq 300); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return; fi
    kill -0 "$pid" 2>/dev/null || die "the node ended at once: see $dir/stdout.log and $dir/kafka.log"
    sleep 0.2
  done
  die "the node does not answer on port $port after 60 s: see $dir/kafka.log"
}

begin() { # DIR PORT CPORT FILE FORMAT_OPTION...
  jars
  configure "$1" "${2:-9092}" "${3:-$((${2:-9092} + 1))}" "${4:-}"
  run "$1" "${@:5}"
}

running() { [ -f "$1/pid" ] && kill -0 "$(cat "$1/pid")" 2>/dev/null; }

end() { # DIR SIGNAL
  running "$1" || return 0
  kill "-$2" "$(cat "$1/pid")"
  for _ in $(seq 300); do
    running "$1" || { rm -f "$1/pid"; return 0; }
    sleep 0.1
  done
  die "pid $(cat "$1/pid") does not end"
}

[ $# -ge 1 ] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
command=$1
shift
case $command in
  jars) jars ;;
  start) [ $# -ge 1 ] || die "start needs a folder"; begin "$@" ;;
  restart) [ -f "${1:-}/server.properties" ] || die "no node was started in '${1:-}'"; run "$1" ;;
  stop) end "${1:?folder}" TERM ;;
  kill) end "${1:?folder}" KILL ;;
  *) die "unknown command '$command': jars, start, stop, kill or restart" ;;
esac
