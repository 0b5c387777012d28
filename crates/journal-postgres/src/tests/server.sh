# A private PostgreSQL for tests: server.sh FOLDER BINARIES PORT. Prints "ready", and lives until its standard input ends.
# PostgreSQL refuses to run as root, so root runs it as the user `postgres`.
set -eu
folder=$1 binaries=$2 port=$3
stop() { [ -z "${pid:-}" ] || { kill -QUIT "$pid"; wait "$pid" || true; }; rm -rf "$folder"; }
trap stop EXIT
cd "$folder"
{
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -subj /CN=ca -days 2
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=localhost
  echo 'subjectAltName=DNS:localhost' >extensions
  openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile extensions
} >log 2>&1 || { cat log >&2; exit 1; }
user=
if [ "$(id -u)" = 0 ]; then
  chown -R postgres .
  chmod 755 .
  user='setpriv --reuid=postgres --regid=postgres --clear-groups'
fi
$user "$binaries/initdb" --pgdata data --username prime --auth-local trust --auth-host scram-sha-256 --encoding UTF8 \
  --no-locale --no-sync >>log 2>&1 || { cat log >&2; exit 1; }
$user "$binaries/postgres" -D data -k "$folder" -c listen_addresses=localhost -c port="$port" -c max_connections=300 \
  -c ssl=on -c ssl_cert_file=../server.crt -c ssl_key_file=../server.key >>log 2>&1 </dev/null &
pid=$!
until "$binaries/pg_isready" --host "$folder" --port "$port" --quiet; do
  kill -0 "$pid" 2>/dev/null || { cat log >&2; exit 1; }
  sleep 0.05
done
echo ready
cat >/dev/null
