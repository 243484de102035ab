#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first day of a researcher on a bare Debian, made by debootstrap: what README says, line by line, `make demo` and
# `make docs`. Needs root, a mirror of Debian and an index of Python packages.

. "$(dirname "$0")/typed.sh"

[ "$(id -u)" = 0 ] || skip_all "$day" "needs root"
command -v debootstrap >/dev/null || skip_all "$day" "there is no debootstrap: apt-get install debootstrap"
debian=$work/debian
# In a name space of its own: what it mounts does not stay if it is killed.
unshare --mount debootstrap --variant=minbase trixie "$debian" >"$work/log" 2>&1 || skip_all "$day" "debootstrap: $(tail -n 1 "$work/log")"

inside() # command: in the root, with /proc, in the folder of the checkout; what this machine needs for its network comes along
{
    env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        PIP_CERT="$PIP_CERT" GIT_SSL_CAINFO="$PIP_CERT" PIP_INDEX_URL="${PIP_INDEX_URL:-https://pypi.org/simple}" http_proxy="$http_proxy" https_proxy="$https_proxy" \
        unshare --mount --pid --fork --mount-proc="$debian/proc" chroot "$debian" bash -c "cd /root/tokmap && $1"
}
export -f inside
export debian
export PIP_CERT=${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt} http_proxy=${http_proxy-} https_proxy=${https_proxy-}

cp "$PIP_CERT" "$debian/root/certificates" && PIP_CERT=/root/certificates # not where Debian puts its own
copy_checkout "$debian/root/tokmap"

typed make_is_all_that_the_demo_needs 0 "inside 'apt-get -qq update && apt-get -qq install -y make >/dev/null && make demo'" <<'END'
The program is
Everything is in
END

# ---- README, as it is ----

block() # heading, language: its first block of code
{
    awk -v heading="## $1" -v fence="\`\`\`$2" '$0 == heading { on = 1; next } on && $0 == fence { inside = 1; next }
        inside && /^```/ { exit } inside { print }' "$root/README.md"
}
block Install sh | sed -e 's/ *#.*//' -e 's/^sudo //' -e 's/apt-get install /apt-get -qq install -y /' >"$debian/root/install"
typed the_install_block_installs 0 "inside '. /root/install && tokmap --version && python3 -c \"import tokmap; print(tokmap.__version__)\"'" <<'END'
tokmap 0.
! command not found
! No such file or directory
END
typed no_package_is_missing_from_the_list 0 "cat $root/README.md" <<'END'
python3-venv
-m venv
END
venv=$(sed -nE 's/.*-m venv ([^ ]+).*/\1/p' "$debian/root/install" | head -n 1)
in_venv=". ${venv:-v}/bin/activate"
typed what_was_installed_packs 0 "inside '$in_venv && PYTHONPATH=tests/oracles:tests/pack python3 -c \"import pack_corpus; print(pack_corpus.small_vocabulary(), end=str())\" >/root/tokenizer.json &&
    mkdir -p data && tokmap pack docs/*.md --tokenizer /root/tokenizer.json -o data/train'" <<'END'
data/train:
END
typed try_proves_it_on_the_spot 0 "inside '$in_venv && tokmap try /root/tokenizer.json docs/*.md'" <<'END'
nothing is left
END
block Resume python >"$debian/root/train.py"
cat >"$debian/root/run.py" <<'END'
n = 0


def train(inputs, labels):
    global n
    n += 1
    if n == 20:
        raise SystemExit(f"stopped in the step of samples {batch.first_sample} to {batch.sample_ids[-1]}")


exec(open("/root/train.py").read().replace("4096", "64"))
END
for samples in '152 to 159' '304 to 311'; do
    typed "the_loop_goes_on_up_to_${samples##* }" 1 "inside '$in_venv && python3 /root/run.py'" <<END
stopped in the step of samples $samples
END
done
typed pip_takes_a_repository 0 "inside 'apt-get -qq install -y git >/dev/null && git init -q && git add -A && git -c user.name=new -c user.email=new@example.org commit -qm all &&
    python3 -m venv /root/other && . /root/other/bin/activate && pip install -q git+file:///root/tokmap && cd / && tokmap --version'" <<'END'
tokmap 0.
END
typed the_site_is_made_by_one_target 0 "inside 'make docs'" <<'END'
The site:
END
exit $status
