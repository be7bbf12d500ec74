<?php
namespace Reelgate;

defined( 'ABSPATH' ) || exit;

// A tag proves that this site has shown a lesson: it is written where the shortcode or block is rendered, so after WordPress and
// membership plug-ins have decided who sees the text around it. Without one there is no OTP.

/** For how many days after its own a tag is accepted. Pages of signed-out visitors, user 0, may come from a cache. */
const TAG_DAYS_OF_USER    = 2;
const TAG_DAYS_OF_ANYBODY = 7;

/** What a tag is for. `plain`: 1 for a video that its author shows without a watermark. */
const TAG_FIELDS = array( 'video', 'post', 'user', 'day', 'plain' );

/** Whole days since 1970, in UTC. */
function today() {
	return intdiv( time(), 86400 );
}

/** @return array the fields with their tag, all texts, as a page carries them. */
function tagged( $video, $post, $user, $plain ) {
	$fields        = array_combine( TAG_FIELDS, array( $video, (string) (int) $post, (string) (int) $user, (string) today(), $plain ? '1' : '0' ) );
	$fields['tag'] = tag_of( $fields );
	return $fields;
}

/** An HMAC. The fields are a hexadecimal id and numbers, so no two sets of them have the same text. */
function tag_of( array $fields ) {
	$values = array_map(
		static function ( $name ) use ( $fields ) {
			return $fields[ $name ];
		},
		TAG_FIELDS
	);
	return hash_hmac( 'sha256', implode( "\n", array_merge( array( 'reelgate-tag-1' ), $values ) ), tag_secret() );
}

/**
 * Whether a tag lets a visitor watch.
 *
 * @param array $sent    the fields and `tag`, as they came.
 * @param int   $visitor id of the visitor, 0 when signed out.
 * @return string 'valid', 'old' (the page, rendered now, has a new one), 'foreign' (made for another user) or 'wrong'.
 */
function check_tag( array $sent, $visitor ) {
	foreach ( TAG_FIELDS as $name ) {
		$value = $sent[ $name ] ?? null;
		if ( 'video' === $name ? ! is_video_id( $value ) : ! is_string( $value ) || ! preg_match( '/^(?:0|[1-9][0-9]{0,9})$/D', $value ) ) {
			return 'wrong';
		}
	}
	if ( ! is_string( $sent['tag'] ?? null ) || ! hash_equals( tag_of( $sent ), $sent['tag'] ) ) {
		return 'wrong';
	}
	$age = today() - (int) $sent['day'];
	if ( $age < 0 || $age > ( '0' === $sent['user'] ? TAG_DAYS_OF_ANYBODY : TAG_DAYS_OF_USER ) ) {
		return 'old';
	}
	return '0' === $sent['user'] || (int) $sent['user'] === (int) $visitor ? 'valid' : 'foreign';
}

function is_video_id( $id ) {
	return is_string( $id ) && 1 === preg_match( '/^[0-9a-f]{32}$/D', $id );
}
