# Submits the job, follows its logs until it ends, and ends as it ended. Takes up again what a lost connection interrupted.
trap 'kill -TERM "$child" 2>/dev/null; exit 143' TERM INT
run() { "$@" & child=$!; wait "$child"; }
case "$RAY_DASHBOARD_ADDRESS" in
  http://*|https://*) address="$RAY_DASHBOARD_ADDRESS" ;;
  *) address="http://$RAY_DASHBOARD_ADDRESS" ;;
esac
run python -u -c "$program" submit
while :; do
  run ray job logs --address "$address" --follow -- "$RAY_JOB_SUBMISSION_ID" || echo "Following the logs of job $RAY_JOB_SUBMISSION_ID ended early"
  code=0
  run python -u -c "$program" result $strict || code=$?
  if [ "$code" -ne 75 ]; then exit "$code"; fi
  echo "Following the logs of job $RAY_JOB_SUBMISSION_ID again, from their beginning"
done
